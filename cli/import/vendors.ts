import { listBuiltins } from '../../config/import-plugin.ts';
import type { Json } from '../../contract/json.ts';
import type { Options } from './draft.ts';

/** A supported vendor: its plugin, and the usual variable for its key. */
interface Vendor {
  readonly plugin: string;
  readonly variable: string;
}

/** Supported vendors by the names of other gateways, in lower case without `-`, `_` and spaces. */
const VENDORS: Readonly<Record<string, Vendor>> = Object.freeze({
  anthropic: { plugin: 'anthropic', variable: 'ANTHROPIC_API_KEY' },
  azure: { plugin: 'azure', variable: 'AZURE_OPENAI_API_KEY' },
  azureai: { plugin: 'azure', variable: 'AZURE_OPENAI_API_KEY' },
  azureopenai: { plugin: 'azure', variable: 'AZURE_OPENAI_API_KEY' },
  bedrock: { plugin: 'bedrock', variable: 'AWS_BEARER_TOKEN_BEDROCK' },
  cerebras: { plugin: 'cerebras', variable: 'CEREBRAS_API_KEY' },
  cohere: { plugin: 'cohere', variable: 'COHERE_API_KEY' },
  coherechat: { plugin: 'cohere', variable: 'COHERE_API_KEY' },
  deepseek: { plugin: 'deepseek', variable: 'DEEPSEEK_API_KEY' },
  fireworks: { plugin: 'fireworks', variable: 'FIREWORKS_API_KEY' },
  fireworksai: { plugin: 'fireworks', variable: 'FIREWORKS_API_KEY' },
  gemini: { plugin: 'gemini', variable: 'GEMINI_API_KEY' },
  google: { plugin: 'gemini', variable: 'GEMINI_API_KEY' },
  groq: { plugin: 'groq', variable: 'GROQ_API_KEY' },
  hostedvllm: { plugin: 'vllm', variable: 'VLLM_API_KEY' },
  hyperbolic: { plugin: 'hyperbolic', variable: 'HYPERBOLIC_API_KEY' },
  lmstudio: { plugin: 'lmstudio', variable: 'LM_STUDIO_API_KEY' },
  mistral: { plugin: 'mistral', variable: 'MISTRAL_API_KEY' },
  mistralai: { plugin: 'mistral', variable: 'MISTRAL_API_KEY' },
  moonshot: { plugin: 'moonshot', variable: 'MOONSHOT_API_KEY' },
  ollama: { plugin: 'ollama', variable: 'OLLAMA_API_KEY' },
  ollamachat: { plugin: 'ollama', variable: 'OLLAMA_API_KEY' },
  openai: { plugin: 'openai', variable: 'OPENAI_API_KEY' },
  openrouter: { plugin: 'openrouter', variable: 'OPENROUTER_API_KEY' },
  perplexity: { plugin: 'perplexity', variable: 'PERPLEXITY_API_KEY' },
  perplexityai: { plugin: 'perplexity', variable: 'PERPLEXITY_API_KEY' },
  together: { plugin: 'together', variable: 'TOGETHER_API_KEY' },
  togetherai: { plugin: 'together', variable: 'TOGETHER_API_KEY' },
  vertex: { plugin: 'vertex', variable: 'GOOGLE_APPLICATION_CREDENTIALS' },
  vertexai: { plugin: 'vertex', variable: 'GOOGLE_APPLICATION_CREDENTIALS' },
  vllm: { plugin: 'vllm', variable: 'VLLM_API_KEY' },
  xai: { plugin: 'xai', variable: 'XAI_API_KEY' },
  zai: { plugin: 'zai', variable: 'ZAI_API_KEY' },
});

/** Settings to call a deployment's vendor, as other gateways write them. */
export interface VendorCall {
  /** Vendor by the other gateway's name. */
  readonly vendor: string;
  /** Reference to the key. */
  readonly apiKey?: string | undefined;
  /** Base URL, as text or reference. */
  readonly baseUrl?: string | undefined;
  /** Azure's `api-version`. */
  readonly apiVersion?: string | undefined;
  /** Azure's resource. */
  readonly resource?: string | undefined;
  /** Model behind an Azure deployment. */
  readonly deployment?: readonly [name: string, model: string] | undefined;
  readonly region?: string | undefined;
  readonly project?: string | undefined;
  /** References to an AWS key. */
  readonly aws?: {
    readonly id: string | undefined;
    readonly key: string | undefined;
    readonly token?: string | undefined;
    readonly profile?: string | undefined;
  };
  /** Microsoft Entra sign-in of the gateway, if used. */
  readonly entra?: Options | undefined;
  /** Reference to a Google service account key. */
  readonly serviceAccount?: string | undefined;
  readonly headers?: Options | undefined;
  readonly timeouts?: Options | undefined;
}

/** Returns the plugin and options for a vendor of another gateway, or the reason why it cannot be called. */
export function findVendor(call: VendorCall): { readonly plugin: string; readonly options: Options } | string {
  const vendor = vendorOf(call.vendor);
  const baseUrl = call.baseUrl?.replace(/\/+$/, '');
  const common = {
    ...(call.apiKey !== undefined && { apiKey: call.apiKey }),
    ...(call.headers && Object.keys(call.headers).length > 0 && { headers: call.headers }),
    ...(call.timeouts && Object.keys(call.timeouts).length > 0 && { timeouts: call.timeouts }),
  };
  const isForeign = vendor?.plugin === 'openai' && baseUrl !== undefined && !/\bapi\.openai\.com\b/.test(baseUrl);
  if (!vendor || isForeign) {
    if (baseUrl === undefined)
      return `Tollgate has no provider for "${call.vendor}"; for an OpenAI-compatible API, use openai-compatible with its baseUrl`;
    // OpenAI’s SDK uses an address unchanged; servers of others add a version to the path.
    const address = isForeign ? baseUrl : versioned('openai-compatible', baseUrl);
    return { plugin: 'openai-compatible', options: { baseUrl: address, ...common } };
  }
  const { plugin } = vendor;
  if (plugin === 'azure') {
    const root = azureRoot(baseUrl, call);
    return typeof root === 'string'
      ? root
      : { plugin, options: { ...root, ...omitAbsent({ entra: call.entra }), ...common } };
  }
  if (plugin === 'bedrock') return { plugin, options: { ...bedrockOptions(call), ...common } };
  if (plugin === 'vertex') return { plugin, options: vertexOptions(call) };
  return { plugin, options: { ...(baseUrl && { baseUrl: versioned(plugin, baseUrl) }), ...common } };
}

/** AWS tools read a key from these variables by default. */
function bedrockOptions({ apiKey, baseUrl, region = reference('AWS_REGION'), aws }: VendorCall): Options {
  const at = omitAbsent({ baseUrl: baseUrl?.replace(/\/+$/, '') });
  if (apiKey !== undefined) return { region, ...at };
  if (aws?.profile !== undefined) return { aws: { region, profile: aws.profile }, ...at };
  const accessKeyId = aws?.id ?? reference('AWS_ACCESS_KEY_ID');
  const secretAccessKey = aws?.key ?? reference('AWS_SECRET_ACCESS_KEY');
  return { aws: { region, accessKeyId, secretAccessKey, ...omitAbsent({ sessionToken: aws?.token }) }, ...at };
}

/** Without a key of its own, a gateway on Google Cloud uses the service account of its machine. */
function vertexOptions({ project = reference('GOOGLE_CLOUD_PROJECT'), region, serviceAccount }: VendorCall): Options {
  const google = serviceAccount === undefined ? { metadata: true } : { serviceAccount };
  return { project, ...omitAbsent({ location: region }), google };
}

function reference(variable: string): string {
  return `\${${variable}}`;
}

/** Usual variable for the key of a vendor. */
export function variableOf(vendor: string): string {
  return vendorOf(vendor)?.variable ?? `${vendor.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}_API_KEY`;
}

let names: ReadonlySet<string> | undefined;

/** Returns our vendor for another gateway's name; undefined if its plugin is not part of this package. */
function vendorOf(name: string): Vendor | undefined {
  const key = name.toLowerCase().replace(/[-_ ]/g, '');
  const vendor = Object.hasOwn(VENDORS, key) ? VENDORS[key] : undefined;
  names ??= new Set(listBuiltins().flatMap(({ kind, name: plugin }) => (kind === 'provider' ? [plugin] : [])));
  return vendor && names.has(vendor.plugin) ? vendor : undefined;
}

function azureRoot(baseUrl: string | undefined, { apiVersion, resource, deployment }: VendorCall): Options | string {
  const own = resource ?? /^https:\/\/([A-Za-z0-9-]+)\.openai\.azure\.com\b/.exec(baseUrl ?? '')?.[1];
  const root = own === undefined ? baseUrl && `${baseUrl.replace(/\/openai(\/v1)?$/, '')}/openai` : undefined;
  if (own === undefined && root === undefined) return 'Azure needs a resource or address, which is missing in the file';
  return {
    ...(own === undefined ? { baseUrl: apiVersion === undefined ? `${root}/v1` : (root ?? '') } : { resource: own }),
    ...(apiVersion !== undefined && { apiVersion }),
    ...(deployment && { deployments: { [deployment[0]]: deployment[1] } }),
  };
}

/** Adds the version of our base URLs, which other gateways leave out. */
function versioned(plugin: string, baseUrl: string): string {
  const version = plugin === 'gemini' ? '/v1beta' : '/v1';
  return /^https?:\/\/[^/]+$/.test(baseUrl) ? `${baseUrl}${version}` : baseUrl;
}

/** Removes members that are undefined. */
export function omitAbsent(value: Readonly<Record<string, Json | undefined>>): Options {
  return Object.fromEntries(Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [[key, each]])));
}
