package render

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// bcrypt hashes a password. The library takes its salt from Go's source of randomness and from nowhere
// else. This runs in a process of its own, with one goroutine, so that source can be exchanged meanwhile.
func (c *randomSource) bcrypt(password string) (string, error) {
	defer func(r io.Reader) { rand.Reader = r }(rand.Reader)
	rand.Reader = c.stream("bcrypt", password)
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("hashing a password with bcrypt: %w", err)
	}
	return string(hash), nil
}

func (c *randomSource) htpasswd(user, password string) (string, error) {
	if strings.Contains(user, ":") {
		return "", fmt.Errorf("the user name %.60q must have no colon", user)
	}
	hash, err := c.bcrypt(password)
	return user + ":" + hash, err
}
