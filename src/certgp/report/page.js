// The choosers of ranks and outputs: everything else on the page works without them.
(() => {
  for (const data of document.querySelectorAll("[id$=rank-data]")) {
    const of = (name) => document.getElementById(data.id.replace(/rank-data$/, name));
    const choices = JSON.parse(data.textContent);
    const slider = of("rank-slider");
    const show = () => {
      const choice = choices[slider.value];
      for (const [name, text] of Object.entries(choice.words)) {
        of(`rank-${name}`).textContent = text;
      }
      for (const [name, [x, y]] of Object.entries(choice.marks)) {
        const dot = of(`dot-${name}`);
        const line = of(`line-${name}`);
        dot.setAttribute("cx", x);
        dot.setAttribute("cy", y);
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
      }
      slider.setAttribute("aria-valuetext", `rank ${choice.words.rank}`);
    };
    slider.addEventListener("input", show);
    of("rank-chooser").hidden = false;
    show();
  }
  const chosen = document.getElementById("output-choice");
  if (!chosen) return;
  const outputs = document.querySelectorAll(".output");
  const show = () => {
    for (const each of outputs) each.hidden = chosen.value !== "" && chosen.value !== each.id;
  };
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    const output = target && target.closest(".output");
    if (!output || !output.hidden) return;
    chosen.value = output.id;
    show();
    target.scrollIntoView();
  };
  chosen.addEventListener("input", show);
  addEventListener("hashchange", follow);
  document.getElementById("output-chooser").hidden = false;
})();
