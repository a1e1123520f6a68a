// What the pages need beyond HTML and htmx: theme, copying, uploads, and where the focus goes.
"use strict";

const root = document.documentElement;

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.setAttribute("aria-pressed", String(isDark()));
  button.querySelector(".word").textContent = isDark() ? "Light mode" : "Dark mode";
}

function say(text) {
  document.getElementById("said").textContent = text;
}

document.addEventListener("click", async (event) => {
  const target = event.target.closest("button");
  if (!target) return;
  if (target.id === "theme") {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("shoal-theme", root.dataset.theme); } catch { /* only for this page */ }
    showTheme();
    document.dispatchEvent(new Event("themechange"));
  }
  if (target.dataset.copy) {
    await navigator.clipboard.writeText(document.querySelector(target.dataset.copy).textContent);
    target.textContent = "Copied";
    say("Copied");
    setTimeout(() => { target.textContent = "Copy"; }, 2000);
  }
  if (target.dataset.line) goToLine(Number(target.dataset.line));
});

function goToLine(line) {
  const text = document.getElementById("toml");
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus();
  text.setSelectionRange(start, start + (lines[line - 1] || "").length);
  text.scrollTop = (line - 4) * (text.scrollHeight / lines.length);
}

// The server names what should be focused next, and what should be said.
document.addEventListener("focus-on", (event) => {
  requestAnimationFrame(() => {
    const next = document.getElementById(event.detail.value);
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  });
});
// An error stands on the fields that it speaks of, and on no other of their form.
document.addEventListener("wrong", (event) => {
  const { form, place, ids } = event.detail;
  const said = document.getElementById(place);
  const scope = said && (said.closest("form") || document);
  if (!scope) return;
  for (const one of scope.querySelectorAll(`[aria-invalid]${form === "toml" ? "#toml" : ""}`)) {
    one.removeAttribute("aria-invalid");
  }
  for (const id of ids) {
    const field = document.getElementById(id);
    if (!field) continue;
    const spoken = (field.getAttribute("aria-describedby") || "").split(" ").filter((one) => one && one !== place);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", [place, ...spoken].join(" "));
  }
});

// A part of a page that is swapped keeps what was unfolded, and how far its lists were scrolled.
let kept = { open: [], scrolled: 0 };
const lists = ".panes > .stack";
document.addEventListener("htmx:beforeSwap", () => {
  const open = [...document.querySelectorAll("main details[id]")].map((one) => [one.id, one.open]);
  kept = { open, scrolled: document.querySelector(lists)?.scrollTop || 0 };
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [id, open] of kept.open) {
    const one = document.getElementById(id);
    if (one && open) one.open = true;
  }
  const list = document.querySelector(lists);
  if (list) list.scrollTop = kept.scrolled;
});

// Nothing is released while something that was typed has not been taken: it would be left out.
function untaken(form) {
  const typed = (one) => {
    if (one.form === form || !one.form || one.type === "hidden" || one.type === "submit") return false;
    if (one.tagName === "SELECT") {
      const stated = [...one.options].find((each) => each.defaultSelected) || one.options[0];
      return Boolean(stated) && one.value !== stated.value;
    }
    return one.type === "checkbox" || one.type === "radio" ? one.checked !== one.defaultChecked : one.value !== one.defaultValue;
  };
  return [...document.querySelectorAll("main input, main select, main textarea")].find(typed);
}
document.addEventListener("submit", (event) => {
  if (event.target.id !== "run-form") return;
  const left = untaken(event.target);
  if (!left) return;
  event.preventDefault();
  const folded = left.closest("details");
  if (folded) folded.open = true;
  document.getElementById("held").textContent = "Something was typed and is not taken yet. Look at it, and then release.";
  left.focus();
});
document.addEventListener("say", (event) => say(event.detail.value));

// The bar below every page: it says what the connection is like, and speaks when a stage changes.
function showLost(text) {
  const lost = document.getElementById("lost");
  if (!lost || lost.textContent === text) return;
  lost.textContent = text;
  lost.hidden = !text;
}
let stage = "";
document.addEventListener("htmx:sendError", () => showLost("The connection to the studio is lost. This page tries again by itself; if the studio has ended, start it again with shoal studio."));
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) showLost("This page has no session any more. Open the address that shoal studio printed when it was started.");
});
document.addEventListener("htmx:afterOnLoad", (event) => {
  if (event.detail.xhr.status >= 400) return;
  const lost = document.getElementById("lost");
  if (lost && !lost.hidden) { showLost(""); say("The connection to the studio is back."); }
  const now = document.querySelector("[data-stage]")?.textContent || "";
  if (now && now !== stage) say(now);
  stage = now;
});
document.addEventListener("htmx:afterSettle", showTheme);

function upload(form, file) {
  const box = form.querySelector("#uploading");
  const bar = box.querySelector("progress");
  const words = box.querySelector("p");
  const error = form.querySelector("#upload-error");
  error.textContent = "";
  box.hidden = false;
  words.textContent = `Taking ${file.name}`;
  const request = new XMLHttpRequest();
  request.open("POST", `${form.dataset.upload}?label=${encodeURIComponent(file.name)}`);
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    if (event.loaded === event.total) words.textContent = "Looking at the table";
  });
  request.addEventListener("load", () => {
    if (request.status < 400) {
      location.assign(form.dataset.then);
      return;
    }
    box.hidden = true;
    let text = `The studio refused the file (${request.status}).`;
    try {
      const answer = JSON.parse(request.responseText);
      text = answer.error || text;
    } catch { /* no JSON: the number must do */ }
    error.textContent = text;
  });
  request.addEventListener("error", () => {
    box.hidden = true;
    error.textContent = "The file could not be sent. Is the studio still running?";
  });
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.send(file);
}

function wireUploads() {
  const form = document.querySelector("form[data-upload]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  input.addEventListener("change", () => { if (input.files.length) upload(form, input.files[0]); });
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  }
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length) upload(form, event.dataTransfer.files[0]);
  });
}

// A link to a part that is folded away unfolds it.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded) { folded.open = true; folded.scrollIntoView(); }
}
addEventListener("hashchange", unfold);

document.addEventListener("DOMContentLoaded", () => { showTheme(); wireUploads(); unfold(); });

// Undo and redo by the keys that everybody knows; in a text field they are the field's own.
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.matches("input[type=text], textarea")) return;
  const key = event.key.toLowerCase();
  const way = key === "z" ? (event.shiftKey ? "redo" : "undo") : key === "y" ? "redo" : "";
  const button = way && document.getElementById(way);
  if (!button) return;
  event.preventDefault();
  if (!button.disabled) button.click();
});
