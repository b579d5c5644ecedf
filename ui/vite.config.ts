// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: {
    outDir: "../python/airpath/ui/static",
    emptyOutDir: true,
    target: "es2022",
    // The page's policy forbids styles and scripts in the page's text.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
