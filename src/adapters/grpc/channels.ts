import { choiceKey } from "../shared/network/egress.ts";
import { Channel, type ChannelNetwork, type ChannelOptions } from "./channel.ts";

/** One tool's share of a channel. */
export interface ChannelLease extends AsyncDisposable {
  readonly channel: Channel;
}

/** The channels to all targets: tools that reach the same one in the same way share it. */
export class Channels {
  readonly #network: ChannelNetwork;
  readonly #channels = new Map<string, { readonly channel: Channel; uses: number }>();

  constructor(network: ChannelNetwork) {
    this.#network = network;
  }

  /** Disposing the lease gives it back; with the last one the channel is closed. */
  open(options: ChannelOptions): ChannelLease {
    const { target } = options;
    const { ca, cert, key, serverName } = target.tls ?? {};
    const name = JSON.stringify([target.address, choiceKey(target.egress), ca, cert, key, serverName]);
    const held = this.#channels.get(name) ?? { channel: new Channel(options, this.#network), uses: 0 };
    held.uses += 1;
    this.#channels.set(name, held);
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      held.uses -= 1;
      if (held.uses > 0) return;
      this.#channels.delete(name);
      await held.channel[Symbol.asyncDispose]();
    };
    return {
      channel: held.channel,
      [Symbol.asyncDispose]: () => {
        closing ??= close();
        return closing;
      },
    };
  }
}
