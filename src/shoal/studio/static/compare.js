// The frontier: drawn by Plotly from a JSON island, in the colours of the theme.
"use strict";

function shade(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function drawFrontier() {
  const figure = document.getElementById("frontier");
  if (!figure || typeof Plotly === "undefined") return;
  const plot = JSON.parse(document.querySelector(figure.dataset.plot).textContent);
  const axis = { gridcolor: shade("--line"), zerolinecolor: shade("--edge"), color: shade("--soft"), linecolor: shade("--line"), rangemode: "tozero", automargin: true };
  const narrow = figure.clientWidth < 520;
  const shades = { frontier: "--sea", tied: "--sea", beaten: "--edge", baseline: "--amber", recommended: "--alarm" };
  for (const trace of plot.data) {
    const colour = shade(shades[trace.name] || "--sea");
    trace.marker = { ...trace.marker, color: colour, line: { color: colour, width: trace.name === "recommended" ? 2 : 1 } };
    trace.cliponaxis = false;
    if (trace.name === "tied" || trace.name === "baseline") trace.marker.symbol = trace.name === "tied" ? "circle-open" : "diamond-open";
    for (const side of ["error_x", "error_y"]) if (trace[side]) trace[side].color = colour;
  }
  const layout = {
    ...plot.layout,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: narrow ? 11 : 13, color: shade("--ink") },
    xaxis: { ...plot.layout.xaxis, ...axis }, yaxis: { ...plot.layout.yaxis, ...axis },
    height: narrow ? 380 : 460, margin: { t: 12, r: 12, l: 56, b: 48 },
    hoverlabel: { bgcolor: shade("--paper"), bordercolor: shade("--edge"), font: { color: shade("--ink") } },
  };
  Plotly.react(figure, plot.data, layout, { responsive: true, displayModeBar: false });
  if (figure.dataset.wired) return;
  figure.dataset.wired = "yes";
  figure.on("plotly_click", (event) => {
    const place = event.points[0].customdata;
    if (place === undefined || place === null) return;
    document.querySelector(`button[data-place="${Number(place)}"]`)?.click();
  });
}

document.addEventListener("DOMContentLoaded", drawFrontier);
document.addEventListener("themechange", drawFrontier);
document.addEventListener("htmx:afterSettle", () => {
  const card = document.getElementById("candidate");
  if (!card || !card.dataset.place) return;
  for (const row of document.querySelectorAll(".points tr.picked")) row.classList.remove("picked");
  document.getElementById(`row-${card.dataset.place}`)?.classList.add("picked");
});
