"""The benchmark data sets: what they are, where they come from and what is known about them.

Checksums are those that several public projects have pinned for the same address, unless ``unverified`` says otherwise;
where none was found, the first download records its own and later ones are compared with it. The fields ``n_rows`` and
``n_columns`` are the paper's, or the source's for sets that are not in the paper.

A set counts as the paper's own only where its ``label`` is empty. A shape proves little: where the paper does not say
what its columns or its target are, ``inferred`` says what was taken for them, and the label always has it.
"""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu"
_CC_BY = "CC BY 4.0"


@dataclass(frozen=True)
class RemoteFile:
    """One file at a public address; ``sha256`` is None where it is not known."""

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Variant:
    """A version of a data set that is in circulation and differs from the paper's; known by its shape."""

    n_rows: int
    n_columns: int
    note: str


@dataclass(frozen=True)
class DatasetInfo:
    """A regression data set, stored as NAME.npz with arrays X (N, D) and y (N,)."""

    name: str
    title: str
    n_rows: int
    n_columns: int
    in_paper: bool
    page: str  # for people
    license: str
    files: tuple[RemoteFile, ...]
    parser: str  # module and function of certgp_paper.datasets.preparation that turn the files into X and y
    variants: tuple[Variant, ...] = ()
    inferred: str = ""  # what the paper leaves open about its version, and what is taken here
    unverified: tuple[str, ...] = ()  # what could not be checked against the source or the paper

    def label(self, n_rows: int, n_columns: int) -> str:
        """How a file of this shape differs, or may, from the paper's set (or the source's); empty: not at all."""
        for variant in self.variants:
            if (variant.n_rows, variant.n_columns) == (n_rows, n_columns):
                return variant.note
        same = (n_rows, n_columns) == (self.n_rows, self.n_columns)
        shapes = "" if same else f"{n_rows:,} x {n_columns} instead of {self.n_rows:,} x {self.n_columns}"
        return "; ".join(filter(None, (shapes, self.inferred)))


def _uci(number: int, slug: str, sha256: str | None) -> RemoteFile:
    return RemoteFile(f"{slug.replace('+', '-')}.zip", f"{_UCI}/static/public/{number}/{slug}.zip", sha256)


def _uci_csv(number: int, name: str, sha256: str) -> RemoteFile:
    """UCI's own CSV of a set whose archive holds a spreadsheet, which would need another library to read."""
    return RemoteFile(f"{name}.csv", f"{_UCI}/static/public/{number}/data.csv", sha256)


_KEGG_INFERRED = "the target (clustering coefficient) and the 19 columns are inferred"
_NO_CHECKSUM = "no published checksum was found: the first download records its own"

DATASETS = {
    info.name: info
    for info in (
        DatasetInfo(
            name="elevators",
            title="Elevators: control of an F16 aircraft",
            n_rows=16_599,
            n_columns=18,
            in_paper=True,
            page="https://www.dcc.fc.up.pt/~ltorgo/Regression/elevators.html",
            license="not stated",
            files=(
                RemoteFile(
                    "elevators.tgz",
                    "https://www.dcc.fc.up.pt/~ltorgo/Regression/elevators.tgz",
                    "a65edba13c25bc5e523ce42e7d087a8e9f0042a80ba2f16c6ed390a28b2c8090",
                ),
            ),
            parser="delimited:elevators",
            unverified=(
                "the checksum was found in one public project only",
                "the paper's released file has other units; standardised they should agree, which was not checked",
            ),
        ),
        DatasetInfo(
            name="protein",
            title="Protein: physicochemical properties of protein tertiary structure (CASP)",
            n_rows=45_730,
            n_columns=9,
            in_paper=True,
            page=f"{_UCI}/dataset/265/physicochemical+properties+of+protein+tertiary+structure",
            license=_CC_BY,
            files=(
                _uci(
                    265,
                    "physicochemical+properties+of+protein+tertiary+structure",
                    "ee6536c8cc415dc50d66bd247af7c9bc95c187ab8a4ea0f1f546b127206c1100",
                ),
            ),
            parser="delimited:protein",
        ),
        DatasetInfo(
            name="keggdirected",
            title="KeggDir: metabolic relation network, directed",
            n_rows=53_413,
            n_columns=19,
            in_paper=True,
            page=f"{_UCI}/dataset/220/kegg+metabolic+relation+network+directed",
            license=_CC_BY,
            files=(_uci(220, "kegg+metabolic+relation+network+directed", None),),
            parser="kegg:keggdirected",
            variants=(
                Variant(
                    48_827,
                    20,
                    "another cleaning: 48,827 x 20, target log(edges); two thirds of the rows are duplicates",
                ),
                Variant(
                    48_827,
                    19,
                    f"48,827 of the 53,413 rows, of another cleaning; {_KEGG_INFERRED}; many inputs are duplicated, "
                    "74 % of the test inputs of split 0 are among its training inputs",
                ),
            ),
            inferred=_KEGG_INFERRED,
            unverified=(
                _NO_CHECKSUM,
                "the paper does not name its target and its 19 columns; the choice here agrees with its scores",
                "UCI counts 53,414 rows, the paper 53,413",
            ),
        ),
        DatasetInfo(
            name="bike",
            title="Bike: hourly rentals of Capital Bikeshare",
            n_rows=17_379,
            n_columns=57,
            in_paper=True,
            page=f"{_UCI}/dataset/275/bike+sharing+dataset",
            license=_CC_BY,
            files=(
                _uci(
                    275,
                    "bike+sharing+dataset",
                    "b70182d0d0508e9abbb79306ce5c0cec34869000f8220175ac83d11dbe845401",
                ),
            ),
            parser="bike:bike",
            variants=(
                Variant(
                    17_379,
                    17,
                    "not one-hot encoded (17 columns, with the casual and registered users that add up to the target); "
                    "target log(count)",
                ),
            ),
            inferred="which columns are one-hot encoded (57 columns) and the target (the count) are inferred",
            unverified=("the paper does not say which columns it encodes: this choice gives its 57",),
        ),
        DatasetInfo(
            name="superconduct",
            title="Super: critical temperature of superconductors",
            n_rows=21_263,
            n_columns=81,
            in_paper=True,
            page=f"{_UCI}/dataset/464/superconductivty+data",
            license=_CC_BY,
            files=(
                _uci(
                    464,
                    "superconductivty+data",
                    "87f4490d73390ff94ee01dbf0d7d32abc80b22f2c803d471765cfc46a9f6371e",
                ),
            ),
            parser="delimited:superconduct",
            variants=(Variant(21_263, 76, "five of the 81 columns are missing"),),
            unverified=("the checksum was found in one public project only",),
        ),
        DatasetInfo(
            name="3droad",
            title="3DRoad: altitude of roads in North Jutland",
            n_rows=434_874,
            n_columns=3,
            in_paper=True,
            page=f"{_UCI}/dataset/246/3d+road+network+north+jutland+denmark",
            license=_CC_BY,
            files=(_uci(246, "3d+road+network+north+jutland+denmark", None),),
            parser="delimited:road",
            variants=(Variant(218_481, 2, "a random half of the rows, longitude and latitude only"),),
            unverified=(_NO_CHECKSUM,),
        ),
        DatasetInfo(
            name="sarcos",
            title="Sarcos: inverse dynamics of a robot arm, first torque",
            n_rows=48_933,
            n_columns=21,
            in_paper=True,
            page="http://gaussianprocess.org/gpml/data/",
            license="not stated",
            files=(
                RemoteFile("sarcos_inv.mat", "http://gaussianprocess.org/gpml/data/sarcos_inv.mat"),
                RemoteFile("sarcos_inv_test.mat", "http://gaussianprocess.org/gpml/data/sarcos_inv_test.mat"),
            ),
            parser="matlab:sarcos",
            variants=(Variant(4_449, 21, "the public test file only"),),
            unverified=(_NO_CHECKSUM,),
        ),
        DatasetInfo(
            name="song",
            title="Song: release year from timbre (YearPredictionMSD)",
            n_rows=515_345,
            n_columns=90,
            in_paper=True,
            page=f"{_UCI}/dataset/203/yearpredictionmsd",
            license=_CC_BY,
            files=(_uci(203, "yearpredictionmsd", None),),
            parser="delimited:song",
            unverified=(_NO_CHECKSUM,),
        ),
        DatasetInfo(
            name="buzz",
            title="Buzz: discussions about a topic on Twitter",
            n_rows=583_250,
            n_columns=77,
            in_paper=True,
            page=f"{_UCI}/dataset/248/buzz+in+social+media",
            license=_CC_BY,
            files=(_uci(248, "buzz+in+social+media", None),),
            parser="delimited:buzz",
            inferred="the target (the count, not transformed) is inferred",
            unverified=(_NO_CHECKSUM, "the paper does not say whether it transforms the target; here it is the count"),
        ),
        DatasetInfo(
            name="electric",
            title="Electric: power of one household, minute by minute",
            n_rows=2_049_280,
            n_columns=19,
            in_paper=True,
            page=f"{_UCI}/dataset/235/individual+household+electric+power+consumption",
            license=_CC_BY,
            files=(
                _uci(
                    235,
                    "individual+household+electric+power+consumption",
                    "9f84b46ade8a2d8e1286ec4b2b6c2987a45a755c59f263be3b3b3d10dfbda3ff",
                ),
            ),
            parser="electric:electric",
            inferred="the 19 columns are inferred",
            unverified=(
                "the paper does not name its 19 columns; its released code shows 13 indicators followed by 6 numbers",
            ),
        ),
        DatasetInfo(
            name="concrete",
            title="Compressive strength of concrete",
            n_rows=1_030,
            n_columns=8,
            in_paper=False,
            page=f"{_UCI}/dataset/165/concrete+compressive+strength",
            license=_CC_BY,
            files=(_uci_csv(165, "concrete", "8d4b15b6fc68cd932d745cbd663d5ceae66dd54422e99c1e4865f2936ab7e2af"),),
            parser="delimited:concrete",
        ),
        DatasetInfo(
            name="energy",
            title="Heating load of buildings",
            n_rows=768,
            n_columns=8,
            in_paper=False,
            page=f"{_UCI}/dataset/242/energy+efficiency",
            license=_CC_BY,
            files=(_uci_csv(242, "energy", "db44dbe453acd464b5cf65be2fb01a28aa9c5b2630300e65fbe28cde35f5d96f"),),
            parser="delimited:energy",
        ),
        DatasetInfo(
            name="airfoil",
            title="Self-noise of airfoils",
            n_rows=1_503,
            n_columns=5,
            in_paper=False,
            page=f"{_UCI}/dataset/291/airfoil+self+noise",
            license=_CC_BY,
            files=(
                _uci(291, "airfoil+self+noise", "5c7767ba53ad827d3f48ba1eb9434117f4892df8f10bc4c99e118a9e8a7ae07c"),
            ),
            parser="delimited:airfoil",
            unverified=("the checksum was found in one public project only",),
        ),
        DatasetInfo(
            name="yacht",
            title="Resistance of sailing yachts",
            n_rows=308,
            n_columns=6,
            in_paper=False,
            page=f"{_UCI}/dataset/243/yacht+hydrodynamics",
            license=_CC_BY,
            files=(
                _uci(243, "yacht+hydrodynamics", "aa52b68f88c4bb552187a53ef4c5753fa178f6a36035a3771c5bc04e078487ac"),
            ),
            parser="delimited:yacht",
        ),
    )
}
