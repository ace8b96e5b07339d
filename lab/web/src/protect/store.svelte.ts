// The manifest of a group that was loaded: it holds for the group that it says.
import { readManifest, type Manifest } from "./model";

class ProtectStore {
  private manifest: Manifest | null = $state.raw(null);
  name = $state("");

  /** Takes a file and returns what it is of. */
  load(name: string, text: string): Manifest {
    const manifest = readManifest(text);
    this.manifest = manifest;
    this.name = name;
    return manifest;
  }

  of(nodes: number, tolerate: number): Manifest | null {
    const m = this.manifest;
    return m && m.nodes === nodes && m.tolerate === tolerate ? m : null;
  }
}

export const protectStore = new ProtectStore();
