import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Route } from '../../contract/plugin.ts';

/** A feature of a built-in plugin, as `config/features.json` lists it: a route, its name, and the configuration that it needs. */
interface Feature {
  readonly method: Route['method'];
  readonly path: string;
  readonly name: string;
  readonly how: string;
}

/** The routes of features that no plugin brought: 503 `feature_disabled`, naming the line of configuration that is missing. */
export function disabledRoutes(isTaken: (key: string) => boolean): readonly Route[] {
  return readFeatures()
    .filter(({ method, path }) => !isTaken(`${method} ${path}`))
    .map(({ method, path, name, how }) => ({
      method,
      path,
      summary: `${name}, which is not switched on`,
      auth: ['key'],
      responses: { 503: 'The feature is not configured.' },
      handler() {
        throw new GatewayError(
          'feature_disabled',
          `${name} is not switched on here. Its operator does that in the configuration: ${how}`,
        );
      },
    }));
}

function readFeatures(): readonly Feature[] {
  return JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config', 'features.json'), 'utf8')) as readonly Feature[];
}
