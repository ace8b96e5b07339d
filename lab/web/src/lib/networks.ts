// Networks by what they are.
export const networks = [
  { value: "100mbit/1ms", label: "100 Mbit/s, 1 ms" },
  { value: "10gbit/20us", label: "10 Gbit/s, 20 µs" },
  { value: "200gbit/2us", label: "200 Gbit/s, 2 µs" },
  { value: "wan", label: "wide area" },
];

/** That of the engine, where none is named. */
export const usualNetwork = "10gbit/20us";
