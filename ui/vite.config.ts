// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

/** Puts the styles of the first view into the page, so that it waits for one request less. */
function firstView(): Plugin {
  return {
    name: "first-view",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        return html.replace(/<link rel="stylesheet"[^>]*href="\.\/([^"]+)"[^>]*>/g, (_, name: string) => {
          const file = bundle?.[name];
          if (file?.type !== "asset") throw new Error(`no styles of ${name}`);
          delete bundle![name];
          return `<style>${String(file.source)}</style>`;
        });
      },
    },
  };
}

export default defineConfig({
  plugins: [svelte(), firstView()],
  base: "./",
  build: {
    outDir: "../python/airpath/ui/static",
    emptyOutDir: true,
    target: "es2022",
    // The page's policy forbids scripts in the page's text.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
