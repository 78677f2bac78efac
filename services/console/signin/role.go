package signin

import "fmt"

// Role is what somebody may do. Each role may do what those before it may.
type Role int

// The roles.
const (
	Viewer   Role = iota + 1 // sees everything but who is signed in
	Operator                 // acts on signers, delayed jobs and dead letters
	Admin                    // moves nonces to the chain's number, revokes sessions and invites people
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String is the role's name in the file of users.
func (r Role) String() string { return roleNames[r] }

// May tells whether somebody of this role may do what needs another.
func (r Role) May(needed Role) bool { return r >= needed }

// parseRole reads a role's name.
func parseRole(text string) (Role, error) {
	for role, name := range roleNames {
		if name == text {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%q is no role (write viewer, operator or admin)", text)
}
