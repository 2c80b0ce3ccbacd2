/** Entry `tollgate/gateway`, for programs that embed the gateway. @public */

export type { Gateway, GatewayOptions } from './app.ts';
export { createGateway } from './app.ts';
