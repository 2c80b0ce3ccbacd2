import type { CallContext, CallResult, PluginApi, Principal } from '../../contract/index.ts';
import type { OpenTool } from './catalog.ts';
import { modelOf } from './names.ts';
import { PROVIDER } from './operation.ts';

/** Calls a tool as a call of the operation `mcp`. `args`: JSON. */
export function callOpenTool(
  { models }: Pick<PluginApi, 'models'>,
  { server, tool }: OpenTool,
  args: string,
  context: CallContext,
): Promise<CallResult<'mcp'>> {
  const model = modelOf(server.options.name, tool.name);
  const request = { model: `${PROVIDER}/${model}`, arguments: args };
  const targets = [{ provider: PROVIDER, model }];
  return models.call('mcp', request, { ...context, principal: forTools(context.principal), targets });
}

const withoutModels = new WeakMap<Principal, Principal>();

/** Caller without its lists of models: lists of tools alone name what it may call here. */
function forTools(principal: Principal): Principal {
  if (!principal.models && !principal.providers) return principal;
  const known = withoutModels.get(principal);
  if (known) return known;
  const { models: _models, providers: _providers, ...rest } = principal;
  const changed = Object.freeze(rest);
  withoutModels.set(principal, changed);
  return changed;
}
