// A picture and the list beside it: pointing at one shows the other, and a click opens it.
"use strict";

const DRAWN = "svg [data-place]";

function mark(place) {
  for (const one of document.querySelectorAll(".pointed")) one.classList.remove("pointed");
  if (place === undefined) return;
  for (const one of document.querySelectorAll(`svg [data-place="${Number(place)}"], #row-${Number(place)}`)) one.classList.add("pointed");
}

for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const wanted = `${DRAWN}, tr[data-place]`;
    const target = event.target.closest?.(wanted) || document.activeElement.closest(wanted);
    mark(target?.dataset.place);
  });
}
document.addEventListener("click", (event) => {
  const drawn = event.target.closest(DRAWN);
  if (drawn) document.querySelector(`button[data-place="${Number(drawn.dataset.place)}"]`)?.click();
});
document.addEventListener("htmx:afterSettle", () => {
  const card = document.getElementById("candidate");
  if (!card || !card.dataset.place) return;
  for (const one of document.querySelectorAll(".picked")) one.classList.remove("picked");
  for (const one of document.querySelectorAll(`svg [data-place="${Number(card.dataset.place)}"], #row-${Number(card.dataset.place)}`)) one.classList.add("picked");
});
