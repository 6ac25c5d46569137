// Runs within the page, before anything is loaded or drawn: relative addresses need the trailing slash that a proxy's link may lack,
// and the chosen theme must not flash.
"use strict";
if (!location.pathname.endsWith("/")) {
  window.stop(); // what the rest of the page asks for would not be found
  location.replace(location.pathname + "/" + location.search + location.hash);
}
try {
  const theme = localStorage.getItem("heddle-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* storage is off: the system's theme it is */ }
