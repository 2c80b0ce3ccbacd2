import type {
  ChatCodec,
  CodecCall,
  FieldTable,
  NativeRow,
  Provider,
  ProviderEffects,
} from '../../../contract/index.ts';

/**
 * Everything that depends on the wire by which a model is called, for vendors that have several. The codec reads finish reasons and
 * units of usage. Nothing here holds for the models of another wire.
 */
export interface ProviderWire {
  readonly codec: ChatCodec;
  readonly fields: FieldTable;
  readonly effects: ProviderEffects;
  native?(model: string, stream: boolean): Readonly<Record<string, NativeRow | undefined>>;
}

/** A wire of some of a vendor's models. */
interface WireChoice {
  readonly wire: ProviderWire;
  /** Whose wire it is, in words and as an example, for docs and tests. */
  readonly when: string;
  readonly example: { readonly model: string };
  has(model: string): boolean;
}

type ByWire = Pick<Provider, 'chat' | 'effects' | 'fields'> & { readonly native: NonNullable<Provider['native']> };

/** The parts of a provider that follow from its wires: the first one that has the model, else `others`. Its wires share a reader of bytes. */
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
