package config

import "fmt"

// Toggle is a switch with a third position, in which the program decides by circumstances.
type Toggle string

// The positions of a Toggle.
const (
	Auto Toggle = "auto"
	On   Toggle = "true"
	Off  Toggle = "false"
)

// Resolve returns the position as a yes or no, given what Auto means here.
func (t Toggle) Resolve(auto bool) bool {
	if t == Auto || t == "" {
		return auto
	}
	return t == On
}

// UnmarshalText takes auto, true or false.
func (t *Toggle) UnmarshalText(text []byte) error {
	switch given := Toggle(text); given {
	case Auto, On, Off:
		*t = given
		return nil
	default:
		return fmt.Errorf("not a switch (use true, false or auto)")
	}
}
