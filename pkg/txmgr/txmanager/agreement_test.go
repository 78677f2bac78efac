package txmanager

import (
	"testing"

	"perpkeeper/pkg/evm"
)

// doors are endpoints of hosts, in order. The one that was asked last is the only one that was not left out.
type doors struct {
	hosts []string
	asked int
}

func (d *doors) Endpoints() (all []evm.EndpointStatus) {
	for i, host := range d.hosts {
		all = append(all, evm.EndpointStatus{Source: evm.Source(rune('a' + i)), Host: host, Private: host == ""})
	}
	return all
}

func (d *doors) Excluding(than ...evm.Source) evm.Reader {
	left := map[evm.Source]bool{}
	for _, one := range than {
		left[one] = true
	}
	for i, e := range d.Endpoints() {
		if !e.Private && !left[e.Source] {
			d.asked = i
		}
	}
	return evm.Reader{}
}

// Two addresses of one host are one word, and two hosts have to say it where there are two.
func TestDoorsOfOneHostAreOneWord(t *testing.T) {
	for name, c := range map[string]struct {
		hosts       []string
		say         []bool
		agree, need int
	}{
		"both doors of one of two hosts": {[]string{"x", "x", "y"}, []bool{true, true, false}, 1, 2},
		"a door of each":                 {[]string{"x", "x", "y"}, []bool{false, true, true}, 2, 2},
		"one host is all there is":       {[]string{"x", "x"}, []bool{true, true}, 1, 1},
		"nobody says so":                 {[]string{"x", "y"}, []bool{false, false}, 0, 2},
		"relays are not asked":           {[]string{"", "x"}, []bool{true, false}, 0, 1},
	} {
		d := &doors{hosts: c.hosts}
		agree, need := agreement(d, func(evm.Reader) bool { return c.say[d.asked] })
		if agree != c.agree || need != c.need {
			t.Errorf("%s: %d of %d", name, agree, need)
		}
	}
}
