// Builds the page into one file, built/page.html: it is embedded in the binary and filled with data by reports, so it may load nothing.
import { defineConfig } from "vitest/config";
import type { Plugin } from "vite";

const placeholder = '<script type="application/json" id="drover-data"></script>';

// Puts scripts and styles into the HTML, and leaves no other file.
function one_file(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("index.html was not built");
      let html = String(page.source);
      for (const [name, part] of Object.entries(bundle)) {
        if (part === page) continue;
        const text = part.type === "chunk" ? part.code : String(part.source);
        const tag = new RegExp(`[ \\t]*<(script|link)[^>]*(src|href)="[^"]*${name}"[^>]*>(</script>)?\\n?`);
        if (!tag.test(html)) throw new Error(`${name} is not named by index.html`);
        html = html.replace(tag, () =>
          part.type === "chunk"
            ? `<script type="module">${text.replace(/<\/script/g, "<\\/script")}</script>\n`
            : `<style>${text}</style>\n`,
        );
        delete bundle[name];
      }
      if (html.split(placeholder).length !== 2)
        throw new Error("the page needs the place for a report's data exactly once");
      page.source = html;
      page.fileName = "page.html";
    },
  };
}

export default defineConfig({
  plugins: [one_file()],
  build: { outDir: "built", target: "es2021", modulePreload: false, assetsInlineLimit: 1 << 20, cssCodeSplit: false },
  test: { include: ["test/*.test.ts"] },
});
