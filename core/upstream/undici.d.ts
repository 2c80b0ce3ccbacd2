/** The files of `undici` that calls need: its index loads 110, also `fetch` and WebSocket. The package declares its index alone. */
declare module 'undici/lib/core/connect.js' {
  export { buildConnector as default } from 'undici';
}

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici';
}
