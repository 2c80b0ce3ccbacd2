// OpenAI's agents as clients of the gateway's MCP servers.
import { MCPServerStreamableHttp } from '@openai/agents';

const server = new MCPServerStreamableHttp({
  url: `${process.env.TOLLGATE_URL}/mcp`,
  name: 'gateway',
  requestInit: { headers: { authorization: `Bearer ${process.env.TOLLGATE_API_KEY}` } },
});
await server.connect();
const tools = await server.listTools();
if (!tools.some(({ name }) => name === 's__echo')) throw new Error('the tool is not listed');
console.log(JSON.stringify(await server.callTool('s__echo', { city: 'Rome' })));
await server.close();
