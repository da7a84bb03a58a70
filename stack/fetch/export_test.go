package fetch

import (
	"context"
	"net"
)

// DialWith lets a test connect in its own way.
func DialWith(c *Client, dial func() (net.Conn, error)) {
	g, _ := c.http.Transport.(*policyTransport)
	g.next.DialContext = func(context.Context, string, string) (net.Conn, error) { return dial() }
}
