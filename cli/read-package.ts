/**
 * Imports the plugin of a package in a process of its own, without the environment of the shell, and sends what its definition
 * declares. `tollgate plugins add` starts it before an operator has agreed to run the package.
 */
import { importPackage } from '../config/import-plugin.ts';

const [, , name = '', folder = ''] = process.argv;

async function readDefinition(): Promise<object> {
  try {
    // Sent as JSON, which has no functions.
    return { plugin: await importPackage(name, folder) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

const found = await readDefinition();
process.send?.(found, undefined, undefined, () => process.exit());
