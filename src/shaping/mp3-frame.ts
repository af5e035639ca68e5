/** Kilobits a second of layer III by the index in a frame's header: of MPEG 1, and of MPEG 2 and 2.5. */
const RATES_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const RATES_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** Samples a second of MPEG 1. */
const FREQUENCIES = [44_100, 48_000, 32_000];

/** By the version in a header: MPEG 2.5, none, MPEG 2, MPEG 1. `divisor`: of the frequency; `samples`: in a frame. */
const VERSIONS = [
  { rates: RATES_2, divisor: 4, samples: 576 },
  undefined,
  { rates: RATES_2, divisor: 2, samples: 576 },
  { rates: RATES_1, divisor: 1, samples: 1_152 },
];

const LAYER_3 = 1;
const HEADER_BYTES = 4;

/**
 * Whether bytes are MP3 audio without a tag before it: a frame of layer III, and the header of another one right behind
 * it, since three bytes alone are too few to tell. Source: ISO/IEC 11172-3, 2.4.1.3; https://mimesniff.spec.whatwg.org/#signature-for-mp3-without-id3.
 */
export function isBareMp3(data: Uint8Array): boolean {
  const size = frameSize(data, 0);
  return size !== undefined && frameSize(data, size) !== undefined;
}

/** Bytes of the frame whose header stands there; undefined where none does. */
function frameSize(data: Uint8Array, at: number): number | undefined {
  if (data.byteLength < at + HEADER_BYTES || data[at] !== 0xff) return undefined;
  const [second = 0, third = 0] = data.subarray(at + 1, at + HEADER_BYTES);
  const version = VERSIONS[(second >> 3) & 3];
  const frequency = FREQUENCIES[(third >> 2) & 3];
  if (second >> 5 !== 7 || ((second >> 1) & 3) !== LAYER_3) return undefined;
  if (version === undefined || frequency === undefined) return undefined;
  const { rates, divisor, samples } = version;
  const rate = rates[third >> 4] ?? 0;
  return rate === 0 ? undefined : Math.floor((samples * 125 * rate * divisor) / frequency) + ((third >> 1) & 1);
}
