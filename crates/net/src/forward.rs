//! Forwards methods of stream wrappers to the stream below.

/// Methods of `AsyncRead` and `AsyncWrite`, for the body of an `impl`, that call the same method of
/// the stream below: in a field, or in each variant of an enum.
///
/// ```ignore
/// net::forward!(stream: is_write_vectored, poll_flush, poll_shutdown);
/// net::forward!([Plain Encrypted]: poll_read);
/// ```
///
/// With `then`, the wrapper's method of that name gets what `poll_write` and `poll_write_vectored`
/// return, and returns it:
///
/// ```ignore
/// net::forward!(stream then wrote: poll_write, poll_write_vectored);
/// ```
///
/// A wrapper that forwards a write also forwards
/// [`poll_write_vectored`](tokio::io::AsyncWrite::poll_write_vectored) and
/// [`is_write_vectored`](tokio::io::AsyncWrite::is_write_vectored): without them h2 copies every
/// payload into one buffer.
#[macro_export]
macro_rules! forward {
    ($to:tt: $($method:ident),+) => { $($crate::forward!(@$method $to);)+ };
    ($field:ident then $then:ident: poll_write, poll_write_vectored) => {
        $crate::forward!(@poll_write ($field $then));
        $crate::forward!(@poll_write_vectored ($field $then));
    };
    (@poll_read $to:tt) => {
        fn poll_read(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            buf: &mut ::tokio::io::ReadBuf<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            $crate::forward!(@call self $to poll_read(cx, buf))
        }
    };
    (@poll_write $to:tt) => {
        fn poll_write(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            buf: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            $crate::forward!(@call self $to poll_write(cx, buf))
        }
    };
    (@poll_write_vectored $to:tt) => {
        fn poll_write_vectored(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            bufs: &[::std::io::IoSlice<'_>],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            $crate::forward!(@call self $to poll_write_vectored(cx, bufs))
        }
    };
    (@is_write_vectored [$($variant:ident)+]) => {
        fn is_write_vectored(&self) -> bool {
            match self {
                $(Self::$variant(stream) => stream.is_write_vectored(),)+
            }
        }
    };
    (@is_write_vectored $field:ident) => {
        fn is_write_vectored(&self) -> bool {
            self.$field.is_write_vectored()
        }
    };
    (@$flush_or_shutdown:ident $to:tt) => {
        fn $flush_or_shutdown(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            $crate::forward!(@call self $to $flush_or_shutdown(cx))
        }
    };
    (@call $self:ident [$($variant:ident)+] $method:ident $arguments:tt) => {
        match $self.get_mut() {
            $(Self::$variant(stream) => ::std::pin::Pin::new(stream).$method $arguments,)+
        }
    };
    (@call $self:ident ($field:ident $then:ident) $method:ident $arguments:tt) => {{
        let this = $self.get_mut();
        let returned = ::std::pin::Pin::new(&mut this.$field).$method $arguments;
        this.$then(returned)
    }};
    (@call $self:ident $field:ident $method:ident $arguments:tt) => {
        ::std::pin::Pin::new(&mut $self.get_mut().$field).$method $arguments
    };
}
