package algo

import "volley/plan"

// spread is the reverse of [reduce]: position 0 of each crew has a packet, and in the
// end all have it. It returns, for each crew, the slot of the packet.
func spread(b *Builder, stages []stage, crews []crew) []plan.Slot {
	have := make([]plan.Slot, len(crews))
	for i, c := range crews {
		if c.at == 0 {
			have[i] = c.have[0]
		}
	}
	for _, st := range stages { // positions below st.from have it
		for port, ch := range st.chunks {
			for i, c := range crews {
				if c.at < ch.count && c.at+ch.at < c.size {
					b.Send(port, c.member(c.at+ch.at), []plan.Slot{have[i]})
				}
			}
		}
		for port, ch := range st.chunks {
			for i, c := range crews {
				if ch.at <= c.at && c.at < ch.at+ch.count {
					have[i] = b.Receive(port, c.member(c.at-ch.at), 1)[0]
				}
			}
		}
		b.EndRound()
	}
	return have
}
