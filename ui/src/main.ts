import "./style.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { begin, hasToken, takeToken } from "./lib/api";
import { scenario } from "./lib/store.svelte";

takeToken();
// What the first view needs is asked for before anything is drawn.
const isBuild = /^#?(\/build)?$/.test(location.hash);
if (hasToken()) {
  begin("/api/about");
  if (isBuild) {
    begin("/api/schema");
    void scenario.check();
  }
}
const target = document.getElementById("app");
if (target) mount(App, { target });
