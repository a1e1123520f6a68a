// Before anything is painted: the theme that the steward chose, if one was chosen.
"use strict";
try {
  const chosen = localStorage.getItem("shoal-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch { /* Storage may be forbidden; then the system's theme is taken. */ }
