// The frontier and the list below it: pointing at one shows the other, and a click opens it.
"use strict";

function mark(place) {
  for (const one of document.querySelectorAll(".pointed")) one.classList.remove("pointed");
  if (place === undefined) return;
  for (const one of document.querySelectorAll(`circle[data-place="${Number(place)}"], #row-${Number(place)}`)) one.classList.add("pointed");
}

for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const target = event.target.closest?.("circle[data-place], tr[data-place]");
    mark(target?.dataset.place);
  });
}
document.addEventListener("click", (event) => {
  const circle = event.target.closest("circle[data-place]");
  if (circle) document.querySelector(`button[data-place="${Number(circle.dataset.place)}"]`)?.click();
});
document.addEventListener("htmx:afterSettle", () => {
  const card = document.getElementById("candidate");
  if (!card || !card.dataset.place) return;
  for (const one of document.querySelectorAll(".picked")) one.classList.remove("picked");
  for (const one of document.querySelectorAll(`circle[data-place="${Number(card.dataset.place)}"], #row-${Number(card.dataset.place)}`)) one.classList.add("picked");
});
