import { type ContentPart, GatewayError, type ImagePart, type Json } from '../../../contract/index.ts';

/** Limits of `inputs`; images do not count as text. */
export const INPUT_LIMITS = Object.freeze({ characters: 200_000, images: 16, depth: 32 });

/** A caller's `inputs` in the form sent to models. */
export interface AgentInputs {
  /** Inputs as JSON (a single string unchanged), images replaced by `[image 1]`; empty without inputs. */
  readonly text: string;
  readonly images: readonly ImagePart[];
}

const IMAGE_URL = /^(?:https?:\/\/|data:image\/(?:png|jpeg|gif|webp);base64,)/;

/**
 * Reads `inputs`: any JSON. OpenAI's `{"type": "image_url", "image_url": {"url": …}}` at any depth is an image. Throws
 * `request_too_large` over {@link INPUT_LIMITS} and `invalid_request` for an image that is neither http(s) nor a data
 * URL.
 */
export function readInputs(inputs: unknown, param = 'inputs'): AgentInputs {
  if (inputs === undefined || inputs === null) return { text: '', images: [] };
  const images: ImagePart[] = [];
  const rest = collect(inputs, images, param, 0);
  const text = typeof rest === 'string' ? rest : JSON.stringify(rest);
  if (text.length > INPUT_LIMITS.characters) {
    tooLarge(param, `has ${text.length} characters without images; the limit is ${INPUT_LIMITS.characters}`);
  }
  return { text, images };
}

/** Builds the user's turn: message, inputs, quoted texts, images. A plain string without images. */
export function userContent(message: string, inputs: AgentInputs, quoted = ''): string | readonly ContentPart[] {
  const text = `${inputs.text === '' ? message : `${message}\n\nInputs:\n${inputs.text}`}${quoted}`;
  return inputs.images.length === 0 ? text : [{ type: 'text', text }, ...inputs.images];
}

function collect(value: unknown, images: ImagePart[], param: string, depth: number): Json {
  if (depth > INPUT_LIMITS.depth) {
    throw new GatewayError('invalid_request', `${param} is nested deeper than ${INPUT_LIMITS.depth} levels.`, {
      param,
    });
  }
  if (Array.isArray(value)) return value.map((one, index) => collect(one, images, `${param}[${index}]`, depth + 1));
  if (typeof value !== 'object' || value === null) return value as Json;
  if (isImage(value)) return addImage(value, images, param);
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, collect(one, images, `${param}.${key}`, depth + 1)]),
  );
}

function addImage(part: { readonly image_url: unknown }, images: ImagePart[], param: string): string {
  const image = typeof part.image_url === 'string' ? { url: part.image_url } : part.image_url;
  const { url, detail } = (image ?? {}) as { readonly url?: unknown; readonly detail?: unknown };
  if (typeof url !== 'string' || !IMAGE_URL.test(url)) {
    const at = `${param}.image_url.url`;
    throw new GatewayError('invalid_request', `${at} must be an https URL or a data URL of a png, jpeg, gif or webp.`, {
      param: at,
    });
  }
  if (images.length >= INPUT_LIMITS.images) tooLarge(param, `exceeds the limit of ${INPUT_LIMITS.images} images`);
  images.push({ type: 'image_url', image_url: { url, ...(typeof detail === 'string' && { detail }) } });
  return `[image ${images.length}]`;
}

function isImage(value: object): value is { readonly type: 'image_url'; readonly image_url: unknown } {
  return 'type' in value && value.type === 'image_url' && 'image_url' in value;
}

function tooLarge(param: string, why: string): never {
  throw new GatewayError('request_too_large', `${param} ${why}.`, { param });
}
