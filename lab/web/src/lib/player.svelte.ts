// How many rounds of the plan have passed, for the views that go through it step by step.
// The address has it as `round`; all rounds have passed unless it says otherwise.
import { planStore } from "./plan";
import { explorer } from "./state.svelte";

type Rounds = readonly unknown[];

class Player {
  /** How much of the next round has passed, from 0 to 1, while it moves. */
  progress = $state(0);

  /** The rounds of what is stepped through, where that is not the plan of the page. */
  private others: Rounds | null = $state.raw(null);
  private lent: Rounds | null = null; // the same: who ends reads of a state what it was before

  // What plays and what moves belong to a plan. When another one is shown, they are over.
  private played: Rounds | null = $state.raw(null);
  private passing: { of: Rounds; round: number } | null = $state.raw(null);

  /** Of the rounds, where each is to pass in proportion to its own; else all pass alike. */
  times: number[] | null = null;

  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  private get shown(): Rounds {
    return this.others ?? planStore.result?.cost.rounds ?? none;
  }

  /** Steps through other rounds than the page's, until the function that it returns is called, or another takes over. */
  lend(rounds: Rounds): () => void {
    this.lent = this.others = rounds;
    return () => {
      if (this.lent === rounds) this.others = null;
    };
  }

  get rounds(): number {
    return this.shown.length;
  }

  get playing(): boolean {
    return this.played === this.shown;
  }

  get moving(): boolean {
    return this.passing !== null && this.passing.of === this.shown && this.passing.round === this.position;
  }

  get position(): number {
    return explorer.index("round", this.rounds) ?? this.rounds;
  }

  /** Goes to where so many rounds have passed, at once. */
  seek(position: number): void {
    this.halt();
    this.set(Math.max(0, Math.min(position, this.rounds)));
  }

  back(): void {
    const to = this.moving ? this.position : this.position - 1;
    this.pause();
    this.seek(to);
  }

  /** Lets a round pass; one that passes already ends at once. */
  forward(): void {
    this.pause();
    if (this.moving) this.seek(this.position + 1);
    else if (this.position < this.rounds) this.move();
  }

  toggle(): void {
    if (this.playing) return this.pause();
    if (this.position >= this.rounds) this.seek(0);
    this.played = this.shown;
    this.move();
  }

  pause(): void {
    this.played = null;
  }

  /** Stops everything: the view is left. */
  halt(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.pause();
    this.passing = null;
    this.progress = 0;
  }

  private set(position: number): void {
    explorer.setParams({ round: position === this.rounds ? undefined : position });
  }

  private move(): void {
    if (this.position >= this.rounds) return this.pause();
    const all = this.rounds <= 12 ? 1000 * this.rounds : Math.max(250 * this.rounds, 12000);
    const sum = this.times?.reduce((a, b) => a + b, 0);
    const duration = sum ? (all * this.times![this.position]!) / sum : all / this.rounds;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.end();
      if (this.playing) this.timer = setTimeout(() => this.playing && this.move(), duration);
      return;
    }
    let start: number | undefined;
    const tick = (now: number) => {
      if (!this.moving) return this.halt();
      start ??= now;
      const part = Math.min(1, (now - start) / duration);
      if (part < 1) {
        this.progress = ease(part);
        this.frame = requestAnimationFrame(tick);
        return;
      }
      this.end();
      if (this.playing) this.move();
    };
    this.passing = { of: this.shown, round: this.position };
    this.progress = 0;
    this.frame = requestAnimationFrame(tick);
  }

  /** The round has passed. */
  private end(): void {
    this.passing = null;
    this.progress = 0;
    this.set(this.position + 1);
    if (this.position >= this.rounds) this.pause();
  }
}

const none: Rounds = [];

function ease(part: number): number {
  return part * part * (3 - 2 * part);
}

export const player = new Player();
