// The AI SDK as a client of the gateway's MCP servers.
import { createMCPClient } from '@ai-sdk/mcp';

const headers = { authorization: `Bearer ${process.env.TOLLGATE_API_KEY}` };
const client = await createMCPClient({
  transport: { type: 'http', url: `${process.env.TOLLGATE_URL}/mcp`, headers },
});
const tools = await client.tools();
const result = await tools.s__echo.execute({ city: 'Rome' }, { toolCallId: '1', messages: [] });
console.log(JSON.stringify(result));
await client.close();
