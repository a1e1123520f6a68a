// The grid of columns: filter, selection by mouse, touch and keys, one change for many rows, and the
// column in full beside it. The server renders every row; here is only where one is and what is picked.
"use strict";

const ROLE_KEYS = { i: "identifier", q: "quasi-identifier", c: "confidential", o: "other" };
const KIND_KEYS = { 1: "numeric", 2: "ordinal", 3: "nominal", 4: "date" };
const grid = document.getElementById("grid");
const picked = new Set(); // places, as texts
let current = null; // the place that has the keyboard
let anchor = null; // where a range begins
let looking = 0; // the timer of the inspector
let opening = null; // the place whose inspector gets the keyboard as soon as it is there

const rowAt = (place) => document.getElementById(`column-${place}`);
const rows = () => [...grid.querySelectorAll("#columns > .row")];
const visible = () => rows().filter((row) => !row.hidden);
const placeOf = (row) => row.dataset.place;

function show() {
  for (const row of rows()) {
    const on = picked.has(placeOf(row));
    row.setAttribute("aria-selected", String(on));
    row.querySelector("input[type=checkbox]").checked = on;
    row.tabIndex = placeOf(row) === current ? 0 : -1;
    row.classList.toggle("current", placeOf(row) === current);
  }
  const said = document.getElementById("picked");
  const text = picked.size ? `${picked.size} selected` : "";
  if (said.textContent !== text) said.textContent = text;
  document.getElementById("tools").classList.toggle("some", picked.size > 0);
  document.getElementById("bulk-all").textContent = picked.size ? "Select none" : "Select all";
}

// The column in full follows the row, as soon as the keys rest.
function inspect(place, open) {
  const shown = document.getElementById("inspector");
  if (open) document.body.classList.add("inspecting");
  opening = open || place === opening ? place : null;
  clearTimeout(looking);
  if (shown.dataset.place === place) {
    if (opening !== null) focusInspector();
    return;
  }
  looking = setTimeout(() => {
    htmx.ajax("GET", `${grid.dataset.base}/roles/column/${place}`, { target: "#inspector", swap: "outerHTML" });
  }, opening === null ? 150 : 0);
}

function focusInspector() {
  opening = null;
  const first = document.querySelector("#inspector input[name=role]:checked");
  if (first) first.focus();
}

function go(row, { extend = false, keep = false } = {}) {
  if (!row) return;
  const before = current;
  current = placeOf(row);
  if (extend) {
    anchor = anchor ?? before;
    const all = visible();
    const ends = [all.indexOf(rowAt(anchor)), all.indexOf(row)].sort((a, b) => a - b);
    picked.clear();
    for (const one of all.slice(Math.max(ends[0], 0), ends[1] + 1)) picked.add(placeOf(one));
  } else {
    anchor = current;
    if (!keep) picked.clear();
  }
  show();
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  try { sessionStorage.setItem("shoal-row", `${grid.dataset.base} ${current}`); } catch { /* not kept */ }
  inspect(current, false);
}

function toggle(row) {
  const place = placeOf(row);
  if (!picked.delete(place)) picked.add(place);
  anchor = current = place;
  show();
}

// What is picked, or else the row that has the keyboard.
const chosen = () => (picked.size ? rows().map(placeOf).filter((place) => picked.has(place)) : current === null ? [] : [current]);

function send(values) {
  const places = chosen();
  if (!places.length) return;
  const shown = document.getElementById("inspector").dataset.place;
  htmx.ajax("POST", `${grid.dataset.base}/roles/rows`, {
    source: grid, swap: "none", values: { ...values, places: places.join(","), shown },
  });
}

function confirm() {
  const places = chosen();
  if (!places.length) return;
  send({ confirm: "yes" });
  const sent = new Set(places);
  for (const place of places) rowAt(place).classList.add("confirmed");
  const all = visible();
  const at = all.indexOf(rowAt(places[places.length - 1]));
  const left = [...all.slice(at + 1), ...all.slice(0, at)].find((row) => !row.classList.contains("confirmed") && !sent.has(placeOf(row)));
  if (left) go(left);
  else { picked.clear(); show(); document.getElementById("onward").focus(); }
}

function pressed(event) {
  const row = event.target.closest && event.target.closest("#columns > .row");
  if (!row || event.target !== row || event.altKey) return;
  const all = visible();
  const at = all.indexOf(row);
  const jump = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: all.length - 1 }[event.key];
  const letter = event.key.toLowerCase();
  if (jump !== undefined) go(all[Math.min(Math.max(jump, 0), all.length - 1)], { extend: event.shiftKey, keep: event.ctrlKey });
  else if (event.key === " ") toggle(row);
  else if (event.key === "Enter") confirm();
  else if (event.key === "ArrowRight" || event.key === "F2") inspect(placeOf(row), true);
  else if (event.key === "Escape") { picked.clear(); show(); }
  else if ((event.ctrlKey || event.metaKey) && letter === "a") { for (const one of all) picked.add(placeOf(one)); show(); }
  else if (event.ctrlKey || event.metaKey) return;
  else if (event.key === "/") document.getElementById("find").focus();
  else if (ROLE_KEYS[letter]) send({ role: ROLE_KEYS[letter] });
  else if (KIND_KEYS[event.key]) send({ kind: KIND_KEYS[event.key] });
  else return;
  event.preventDefault();
}

function filter() {
  const words = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows()) {
    row.hidden = !words.every((word) => row.dataset.find.includes(word));
    if (row.hidden) picked.delete(placeOf(row));
  }
  document.getElementById("none-found").hidden = visible().length > 0;
  if (!visible().some((row) => placeOf(row) === current)) current = visible().length ? placeOf(visible()[0]) : null;
  show();
}

if (grid) {
  grid.addEventListener("keydown", pressed);
  grid.addEventListener("focusin", (event) => {
    const row = event.target;
    if (!row.matches("#columns > .row") || placeOf(row) === current) return;
    anchor = current = placeOf(row);
    show();
  });
  grid.addEventListener("click", (event) => {
    const row = event.target.closest("#columns > .row");
    if (!row || event.target.closest("select")) return;
    if (event.target.type === "checkbox") {
      if (event.shiftKey) go(row, { extend: true });
      else toggle(row);
      return;
    }
    if (event.shiftKey) { getSelection().removeAllRanges(); go(row, { extend: true }); }
    else if (event.ctrlKey || event.metaKey) { toggle(row); row.focus({ preventScroll: true }); }
    else {
      go(row);
      if (matchMedia("(max-width: 78rem)").matches) inspect(placeOf(row), true); // It lies over the list there.
    }
  });
  grid.addEventListener("change", (event) => {
    if (event.target.tagName !== "SELECT") return;
    const row = event.target.closest(".row");
    if (!picked.has(placeOf(row))) { picked.clear(); current = placeOf(row); show(); }
    send({ [event.target.name]: event.target.value });
  });
  for (const name of ["role", "kind"]) {
    document.getElementById(`bulk-${name}`).addEventListener("change", (event) => {
      if (event.target.value) send({ [name]: event.target.value });
      event.target.value = "";
    });
  }
  document.getElementById("bulk-confirm").addEventListener("click", confirm);
  document.getElementById("bulk-all").addEventListener("click", () => {
    const none = picked.size > 0;
    picked.clear();
    if (!none) for (const row of visible()) picked.add(placeOf(row));
    show();
  });
  const find = document.getElementById("find");
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); go(visible()[0]); }
    if (event.key === "Escape") { find.value = ""; filter(); }
  });
  document.addEventListener("keydown", (event) => {
    const inside = event.target.closest && event.target.closest("#inspector");
    if (event.key === "Escape" && (inside || document.body.classList.contains("inspecting"))) close();
  });
  document.addEventListener("click", (event) => { if (event.target.id === "close-inspector") close(); });
  // A row that the server sends anew keeps its place in the selection, and the keyboard.
  let held = null;
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const active = document.activeElement;
    if (event.detail.target && event.detail.target === active) held = active.id;
  });
  document.addEventListener("htmx:afterRequest", () => {
    current = current !== null && rowAt(current) ? current : null;
    filter();
    if (held && document.activeElement === document.body) {
      const again = document.getElementById(held);
      if (again) again.focus({ preventScroll: true });
    }
    held = null;
    const inspector = document.getElementById("inspector");
    if (inspector && opening !== null && inspector.dataset.place === opening) focusInspector(); // whichever answer it is
    if (inspector && document.activeElement.closest && document.activeElement.closest("#inspector")) {
      current = inspector.dataset.place;
      show();
    } else if (inspector && document.activeElement === rowAt(current) && inspector.dataset.place !== current) {
      inspect(current, false); // a late answer about another column
    }
  });
  let begin = null;
  try {
    const [base, place] = (sessionStorage.getItem("shoal-row") || "").split(" ");
    if (base === grid.dataset.base && !grid.querySelector(".tick.wrong")) begin = rowAt(place);
  } catch { /* not kept */ }
  begin = begin || rowAt(document.getElementById("inspector").dataset.place) || rows()[0];
  if (begin) {
    anchor = current = placeOf(begin);
    show();
    begin.focus({ preventScroll: true });
    inspect(current, false);
  }
}

function close() {
  document.body.classList.remove("inspecting");
  const row = current !== null && rowAt(current);
  if (row) row.focus({ preventScroll: true });
}
