// The pointer over a zone map moves the filter: zones that it may match are coloured, the share skipped is told.
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  const band = svg.querySelector(".band");
  const zones = [...svg.querySelectorAll(".zone")];
  const told = figure.querySelector(".skipped");
  const half = (Number(figure.dataset.to) - Number(figure.dataset.from)) / 2;
  const height = svg.viewBox.baseVal.height;
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const middle = 1 - (event.clientY - box.top) / box.height;
    const from = Math.max(0, middle - half), to = Math.min(1, middle + half);
    band.setAttribute("y", height * (1 - to));
    band.setAttribute("height", height * Math.max(to - from, 0));
    let read = 0, all = 0;
    for (const zone of zones) {
      const hit = Number(zone.dataset.low) <= to && Number(zone.dataset.high) >= from;
      zone.classList.toggle("read", hit);
      const width = Number(zone.getAttribute("width"));
      all += width;
      read += hit ? width : 0;
    }
    told.textContent = `skips ${Math.round(100 * (1 - read / (all || 1)))}%`;
  });
}
