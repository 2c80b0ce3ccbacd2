/** npm registry on the loopback, with the packages installed in this repository, and with additional files. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';

type Manifest = Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string };

const read = (file: string): Manifest => JSON.parse(readFileSync(file, 'utf8')) as Manifest;

/** Reads the folders of all packages in this repository: each version of a name has its own. */
function readPlaces(): (name: string) => readonly string[] {
  const { packages } = read(path.join(PACKAGE_ROOT, 'package-lock.json')) as unknown as { packages: object };
  const places = Object.keys(packages);
  return (name) =>
    places
      .filter((place) => place === `node_modules/${name}` || place.endsWith(`/node_modules/${name}`))
      .map((place) => path.join(PACKAGE_ROOT, place))
      .filter((place) => existsSync(path.join(place, 'package.json')));
}

/** Sends a folder as npm packs it; packages installed below it are separate. */
function sendPacked(folder: string, response: ServerResponse): void {
  const pack = ['--use-compress-program=gzip -1', '--exclude=./node_modules', '--transform=s,^\\.,package,'];
  const tar = spawn('tar', ['-cf', '-', ...pack, '.'], { cwd: folder });
  tar.stdout.pipe(response);
}

/** Starts the registry; `tarball` is one more package, packed. */
export async function startRegistry(own: {
  readonly manifest: string;
  readonly tarball: string;
}): Promise<{ readonly url: string; readonly server: Server }> {
  const placesOf = readPlaces();
  const server = createServer((request, response) => {
    const [, name = '', version] =
      /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+)\.tgz)?$/.exec(decodeURIComponent(request.url ?? '')) ?? [];
    const ours = read(own.manifest);
    const isOurs = name === ours.name;
    const found = isOurs
      ? []
      : placesOf(name).map((place) => ({ place, manifest: read(path.join(place, 'package.json')) }));
    if (version !== undefined) {
      if (isOurs) return void response.end(readFileSync(own.tarball));
      const place = found.find(({ manifest }) => manifest.version === version)?.place;
      if (place !== undefined) return void sendPacked(place, response);
    }
    const manifests = isOurs ? [ours] : found.map(({ manifest }) => manifest);
    const [first] = manifests;
    response.statusCode = first ? 200 : 404;
    response.setHeader('content-type', 'application/json');
    const entries = manifests.map(({ devDependencies: _dev, ...rest }) => [
      rest['version'],
      { ...rest, dist: { tarball: `http://${request.headers.host}/${name}/-/${String(rest['version'])}.tgz` } },
    ]);
    response.end(
      JSON.stringify(
        first ? { name, 'dist-tags': { latest: first.version }, versions: Object.fromEntries(entries) } : {},
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, server };
}
