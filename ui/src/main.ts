import { isBuild } from "./lib/first";
import "./style.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { hasToken, keepToken } from "./lib/api";
import { scenario } from "./lib/store.svelte";

if (isBuild && hasToken()) void scenario.check();
keepToken();
const target = document.getElementById("app");
if (target) mount(App, { target });
