/** Client of the published conformance kit: calls the tools of its server through a gateway. Argument: the address of the server. */
import { connectClient, startMcp } from './mcp-rig.ts';

const url = process.argv.at(-1) ?? '';
const gateway = await startMcp({ kit: { url: url.replace('localhost', '127.0.0.1') } });
const client = await connectClient(gateway, 'auto', '/mcp/kit');
const { tools } = await client.listTools();
for (const { name } of tools) await client.callTool({ name, arguments: { a: 5, b: 3 } });
await client.close();
await gateway.stop();
