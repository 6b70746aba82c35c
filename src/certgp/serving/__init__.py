"""A fitted model behind HTTP: predictions with intervals, the certificate, a model card and two pages.

The only room that knows FastAPI and uvicorn (``pip install certgp[serve]``).
"""

from certgp.serving.app import make_app
from certgp.serving.limits import Limits
from certgp.serving.served import ServedModel

__all__ = ["Limits", "ServedModel", "make_app"]
