// Package runtimehooks calls the Runtime SDK hooks of Cluster API in a plane where all of it runs
// in one process.
//
// Client implements the Runtime SDK client that Cluster API's reconcilers ask for. A hook
// is answered by handlers of two kinds, which callers cannot tell apart:
//
//   - Go functions of this process, given to Handle;
//   - extension servers elsewhere, called over HTTPS as an ExtensionConfig describes. The
//     plane has no Services, so they are addressed by url.
//
// What a caller may rely on:
//
//   - Handlers have unique names of the form <handler>.<extension> and are used in the order
//     of their names. A name belongs to whoever registered it first: an ExtensionConfig
//     cannot take over a Go handler or a handler of another ExtensionConfig.
//   - Nothing is called before WarmUp; until then every use is ErrNotReady. Handle and
//     Discover work earlier, because WarmUp builds on them.
//   - Every call ends: after the timeout of its handler (10 s unless it asks for another,
//     30 s at most) the caller gets an error, even when the handler ignores its context.
//   - Callers and handlers share no memory. Handlers get copies, callers get a response of
//     their own, and a cache keeps copies.
//   - Failure policy Ignore turns an error of the handler, or of the way to it, into an empty
//     success: an unreachable server, a timeout, a status other than 200, a body that is not
//     a response, an error or panic of a Go handler. It never covers a response that says
//     Failure or has an unknown status, nor mistakes on our side of the call: an unknown
//     handler, another hook, an unusable clientConfig, a version that does not convert.
//   - Handlers may be called again for the same event and must be idempotent.
//
// Requests and their settings are never logged. An error repeats the message of a response,
// or at most 512 bytes of one that is not a success of HTTP. Nothing of a call is kept after
// it, except by the cache a caller brings along.
package runtimehooks
