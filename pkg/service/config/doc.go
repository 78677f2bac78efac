// Package config fills typed structures from the places a process is configured from, and explains every mistake it
// meets.
//
// A process has one or more root structures. Their exported fields are sections, and a section's fields are keys:
//
//	type Config struct {
//		Kafka   bus.Config `toml:"kafka"`
//		Scanner Settings   `toml:"scanner"`
//	}
//	type Settings struct {
//		Poll  time.Duration `toml:"poll" help:"how often to ask for a new head"`
//		Param []Param       `toml:"param" help:"values to read by call"` // [[scanner.param]], only in the file
//	}
//
// The values already in the structures are the defaults. Over them go, each winning over the one before: the TOML file,
// the environment (PERPKEEPER_SCANNER_POLL; an empty variable counts as not set) and flags (--scanner.poll). A value
// means the same in all three: it is read as text by one parser per type. Lists are comma separated where there is only
// text. Several files may be named (--config, or PERPKEEPER_CONFIG where no flag does): each wins over those before it.
//
// A secret can be given by a file that holds it: [kafka] password by password_file, PERPKEEPER_KAFKA_PASSWORD_FILE or
// --kafka.password_file. An empty file is no value, as an empty variable is none. A field
// with the tag file:"none" has no such file.
//
// Guaranteed: a key, variable or flag that nobody asked for is an error, as is a value that does not fit; all problems
// are reported at once, one line each, with the place they come from; and no line ever holds the value of a secret.
//
// Not guaranteed: keys are compared without regard to case, and sections that only other processes have are not looked
// into, so that one file and one environment can serve a whole keeper. What a command does not need of its program's
// sections is passed over if the program asks for that (Restrict).
package config
