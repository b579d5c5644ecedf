import "./style.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { takeToken } from "./lib/api";

takeToken();
const target = document.getElementById("app");
if (target) mount(App, { target });
