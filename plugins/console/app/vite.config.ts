import { defineConfig } from 'vite';

/** The page of the console: `npm run build` puts it into `dist/console/`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  // Scripts and styles find what they need from where they are: the gateway may be below a base path.
  experimental: {
    renderBuiltUrl: (_file, { hostType }) => (hostType === 'html' ? undefined : { relative: true }),
  },
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // Its polyfill would be code within the page.
    modulePreload: { polyfill: false },
    // A picture within a style would be no file of its own.
    assetsInlineLimit: 0,
  },
});
