"use strict";
// Sends the values of the form to /predict of the same server and shows the answer.
const form = document.getElementById("ask");
const show = (key, text) => { document.getElementById(key).textContent = text; };
const short = (value) => (Array.isArray(value) ? value.map(short).join("; ") : Number(value).toLocaleString("en", { maximumSignificantDigits: 5 }));

// An old answer does not stay beside a new refusal.
function refuse(text) {
  for (const key of ["mean", "interval", "std"]) show(key, "…");
  show("note", text);
}

function value(control) {
  if (control.value === "") return null; // a gap
  if (control.dataset.kind === "number") return Number(control.value);
  return control.dataset.kind === "true or false" ? control.value === "true" : control.value;
}

async function ask() {
  const controls = Array.from(form.querySelectorAll("[data-kind]"));
  const asked = form.dataset.asks === "rows"
    ? { rows: [controls.map(value)] }
    : { records: [Object.fromEntries(controls.map((each) => [each.name, value(each)]))] };
  const answer = await fetch("/predict", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...asked, coverage: 0.95 }),
  });
  const found = await answer.json();
  if (!answer.ok) {
    refuse(found.error);
    return;
  }
  const between = Array.isArray(found.lower[0])
    ? found.lower[0].map((low, j) => short(low) + " to " + short(found.upper[0][j])).join("; ")
    : short(found.lower[0]) + " to " + short(found.upper[0]);
  show("mean", short(found.mean[0]));
  show("interval", between);
  show("std", short(found.std[0]));
  const care = found.n_outside ? ["This lies outside the range of the training rows: trust it less."] : [];
  show("note", [...care, ...(found.notes || [])].join(" "));
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask().catch((error) => refuse("The server does not answer: " + error.message));
  });
}
