// The rank chooser: everything else on the page works without it.
(() => {
  const choices = JSON.parse(document.getElementById("rank-data").textContent);
  const slider = document.getElementById("rank-slider");
  const show = () => {
    const choice = choices[slider.value];
    for (const [name, text] of Object.entries(choice.words)) {
      document.getElementById(`rank-${name}`).textContent = text;
    }
    for (const [name, [x, y]] of Object.entries(choice.marks)) {
      const dot = document.getElementById(`dot-${name}`);
      const line = document.getElementById(`line-${name}`);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
    slider.setAttribute("aria-valuetext", `rank ${choice.words.rank}`);
  };
  slider.addEventListener("input", show);
  document.getElementById("rank-chooser").hidden = false;
  show();
})();
