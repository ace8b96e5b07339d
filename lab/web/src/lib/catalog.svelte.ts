import type { Catalog } from "./api";
import { asEngineError, call } from "./engine";
import { problems } from "./problems.svelte";

class CatalogStore {
  value: Catalog | null = $state.raw(null);
  busy = $state(true);

  async load(): Promise<void> {
    try {
      this.value = await call<Catalog>("catalog", {});
      problems.report("catalog", null);
    } catch (error) {
      problems.report("catalog", asEngineError(error), { result: null, retry: () => this.load() });
    }
    this.busy = false;
  }

  default(flag: string): string {
    return this.value?.flags.find((f) => f.name === flag)?.default ?? "";
  }

  usage(flag: string): string {
    return this.value?.flags.find((f) => f.name === flag)?.usage ?? "";
  }
}

export const catalog = new CatalogStore();
