/** The entry `tollgate/gateway`: what programs that embed the gateway import. @public */

export type { Gateway, GatewayOptions } from './app.ts';
export { createGateway } from './app.ts';
