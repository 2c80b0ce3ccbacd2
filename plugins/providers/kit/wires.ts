import type {
  ChatCodec,
  CodecCall,
  FieldTable,
  NativeRow,
  Provider,
  ProviderEffects,
} from '../../../contract/index.ts';

/**
 * Properties that depend on the wire of a model, for vendors with several wires. The codec reads finish reasons and
 * usage units. They do not apply to models of another wire.
 */
export interface ProviderWire {
  readonly codec: ChatCodec;
  readonly fields: FieldTable;
  readonly effects: ProviderEffects;
  native?(model: string, stream: boolean): Readonly<Record<string, NativeRow | undefined>>;
}

/** Wire of some of a vendor's models. */
interface WireChoice {
  readonly wire: ProviderWire;
  /** Description of its models and an example, for docs and tests. */
  readonly when: string;
  readonly example: { readonly model: string };
  has(model: string): boolean;
}

type ByWire = Pick<Provider, 'chat' | 'effects' | 'fields'> & { readonly native: NonNullable<Provider['native']> };

/**
 * Parts of a provider that depend on its wires: the first wire that has the model, otherwise `others`. The wires
 * share a byte reader.
 */
export function chooseWire(others: ProviderWire, ...choices: readonly WireChoice[]): ByWire {
  const wireOf = (model: string): ProviderWire => choices.find(({ has }) => has(model))?.wire ?? others;
  const codecOf = ({ model }: CodecCall): ChatCodec => wireOf(model).codec;
  const { reader } = others.codec;
  return {
    chat: {
      ...(reader && { reader }),
      request: (input, call) => codecOf(call).request(input, call),
      response: (body, call) => codecOf(call).response(body, call),
      stream: (call) => codecOf(call).stream(call),
    },
    native: (model, stream) => wireOf(model).native?.(model, stream) ?? {},
    fields: {
      ...others.fields,
      variants: [
        ...(others.fields.variants ?? []),
        ...choices.map(({ wire, when, example }) => ({ when, example, fields: wire.fields.fields })),
      ],
    },
    effects: (model) => wireOf(model).effects,
  };
}
