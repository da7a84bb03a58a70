package hostapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A connection that polderd offers to a host is a request that the host answers when it needs one, with
// the address it should lead to. polderd then answers with a line: okLine, or why there is no connection. After okLine
// the connection carries what it is made for.
const (
	// OutsidePath is where connections are offered.
	OutsidePath = "/outside"
	// OutsideProtocol is the protocol the request is upgraded to.
	OutsideProtocol = "polder-outside"
	// ForwardHeader lists loopback addresses that polderd will connect to, which nobody asks a proxy for.
	ForwardHeader = "Polder-Forward"

	addressHeader = "Polder-Address"
	okLine        = "ok"
	maxLine       = 1 << 10
	answerTimeout = 30 * time.Second
)

// OfferConnection offers a connection to the host, and returns when the host needs it: with the connection, and where
// it should lead. AnswerConnection must follow.
func (c *Client) OfferConnection(ctx context.Context, forward []string) (net.Conn, string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.dir.Socket())
	if err != nil {
		return nil, "", wrapNotRunning(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the wait
	address, err := offer(conn, forward)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // of no use
		return nil, "", err
	}
	return conn, address, nil
}

func offer(conn net.Conn, forward []string) (address string, err error) {
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: host\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n",
		OutsidePath, OutsideProtocol, ForwardHeader, strings.Join(forward, ","))
	if err != nil {
		return "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", wrapNotRunning(err)
	}
	defer res.Body.Close() //nolint:errcheck // there is none
	if res.StatusCode != http.StatusSwitchingProtocols {
		return "", fmt.Errorf("the cluster's host wants no connections: %s", res.Status)
	}
	return res.Header.Get(addressHeader), nil
}

// AnswerConnection tells the host that its connection leads where it should from here on, or why it does not.
func AnswerConnection(conn net.Conn, problem error) error {
	line := okLine
	if problem != nil {
		line = strings.Join(strings.Fields(problem.Error()), " ")
		line = line[:min(len(line), maxLine-1)]
	}
	_, err := io.WriteString(conn, line+"\n")
	return err
}

// ErrStaleOffer means that who has offered the connection is gone.
var ErrStaleOffer = errors.New("the offered connection is closed")

// UseConnection takes an offered connection, whose request was read, and asks for it to lead to address.
func UseConnection(conn net.Conn, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil || strings.ContainsAny(address, "\r\n") {
		return fmt.Errorf("%q is not HOST:PORT", address)
	}
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil { //nolint:forbidigo // the kernel's clock is meant
		return fmt.Errorf("%w: %w", ErrStaleOffer, err)
	}
	_, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n",
		OutsideProtocol, addressHeader, address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStaleOffer, err)
	}
	line, err := readLine(conn)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStaleOffer, err)
	}
	if line != okLine {
		return errors.New(line)
	}
	return conn.SetDeadline(time.Time{})
}

// readLine reads no byte beyond the line, since all that follows is another's.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxLine; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
	}
	return "", errors.New("the answer is too long")
}
