import type {
  DialectConnection,
  DialectDefinition,
  DialectNative,
  DialectNativeStream,
  DialectStream,
} from '../contract/dialect.ts';
import { callOwned, runOwned } from '../plugins/attribution.ts';

type Own = <Args extends readonly unknown[], T>(run: (...args: Args) => T) => (...args: Args) => T;

/** A dialect whose errors are known as its plugin's. */
export function ownDialect(owner: string, dialect: DialectDefinition): DialectDefinition {
  const own: Own =
    (run) =>
    (...args) =>
      callOwned(owner, () => run(...args));
  const { expand, remember, count, native, models, socket } = dialect;
  return {
    ...dialect,
    ...(expand && { expand: (input, caller) => runOwned(owner, () => expand.call(dialect, input, caller)) }),
    ...(remember && {
      remember: (response, context, caller) => runOwned(owner, () => remember.call(dialect, response, context, caller)),
    }),
    ...(count && { count: own((tokens, context) => count.call(dialect, tokens, context)) }),
    ...(native && { native: ownNative(own, native) }),
    ...(socket && { socket: { ...socket, connect: (memory) => ownConnection(own, socket.connect(memory)) } }),
    ...(models && {
      models: {
        ...models,
        list: own((rows, query) => models.list(rows, query)),
        one: own((row) => models.one(row)),
      },
    }),
    read: own((input) => dialect.read(input)),
    write: own((response, context) => dialect.write(response, context)),
    error: own((error, requestId) => dialect.error(error, requestId)),
    stream: own((context) => ownStream(own, dialect.stream(context))),
  };
}

function ownConnection(own: Own, connection: DialectConnection): DialectConnection {
  return {
    read: own((message) => connection.read(message)),
    event: own((event) => connection.event(event)),
    refuse: own((status, body, headers) => connection.refuse(status, body, headers)),
  };
}

function ownNative(own: Own, native: DialectNative): DialectNative {
  return {
    ...native,
    patch: own((body, change) => native.patch(body, change)),
    write: own((body, context) => native.write(body, context)),
    stream: own((context): DialectNativeStream => {
      const stream = native.stream(context);
      return { ...ownEnds(own, stream), push: own((event) => stream.push(event)) };
    }),
  };
}

function ownStream(own: Own, stream: DialectStream): DialectStream {
  return { ...ownEnds(own, stream), push: own((chunk) => stream.push(chunk)) };
}

function ownEnds(own: Own, stream: Omit<DialectStream, 'push'>): Omit<DialectStream, 'push'> {
  const { response, contentType, keepAlive } = stream;
  return {
    end: own(() => stream.end()),
    fail: own((error, requestId) => stream.fail(error, requestId)),
    ...(response && { response: own(() => response.call(stream)) }),
    ...(contentType !== undefined && { contentType }),
    ...(keepAlive !== undefined && { keepAlive }),
  };
}
