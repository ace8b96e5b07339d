// A plan of one's own file: it is shown until a field is changed, and compared with its own matrix until another is chosen.
import type { Flags, Plan } from "./api";
import { asEngineError, call, type EngineError } from "./engine";
import { planStore } from "./plan";
import { explorer } from "./state.svelte";

interface Text {
  name: string;
  text: string;
}

class Own {
  private file: Text | null = $state.raw(null);
  private plan: Plan | null = $state.raw(null);
  /** The matrix that the plan is compared with; "": what it computes. */
  matrix = $state("");
  error: EngineError | null = $state.raw(null);

  /** The file that is shown. */
  get shown(): Text | null {
    return this.plan !== null && this.plan === planStore.result ? this.file : null;
  }

  async load(file: Text, matrix: string): Promise<Plan> {
    const { beta = "", tau = "", gamma = "", size = "", model = "", network = "", ports = "" } = explorer.request;
    const flags: Flags = { beta, tau, gamma, size, model, network, ports, matrix };
    return call<Plan>("load", { ...file, flags });
  }

  show(file: Text, matrix: string, plan: Plan): void {
    this.file = file;
    this.matrix = matrix;
    this.error = null;
    this.plan = { ...plan, command: `from ${file.name}` };
    // The fields say what the plan is of; a matrix that it does not name is its own.
    const { processors, ports, field, rows, columns, pieces } = plan.info;
    const [sources, sinks] = [rows / pieces, columns / pieces];
    const apart = processors > Math.max(sources, sinks);
    const { beta = "", tau = "", gamma = "", size = "", model = "", network = "" } = explorer.flags;
    explorer.apply({ flags: { beta, tau, gamma, size, model, network, matrix, processors: `${sources}`, ports: `${ports}`, field, sinks: apart || sinks !== sources ? `${sinks}` : "", separate: apart ? "true" : "" } }, "replace");
    planStore.put({ flags: { ...explorer.request } }, this.plan);
  }

  /** Compares the plan that is shown with another matrix. */
  async compare(matrix: string): Promise<void> {
    const file = this.shown;
    if (!file) return;
    this.matrix = matrix;
    try {
      const plan = await this.load(file, matrix);
      if (this.shown === file && this.matrix === matrix) this.show(file, matrix, plan);
    } catch (error) {
      if (this.matrix === matrix) this.error = asEngineError(error);
    }
  }
}

export const own = new Own();
