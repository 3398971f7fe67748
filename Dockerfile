# syntax=docker/dockerfile:1

# The gateway, the libraries that it links to, root certificates, and nothing else: no shell, no package manager.
# `/apiserver` and `/patch` are what KubeVela's chart starts.

FROM rust:1.95-bookworm AS build
# The image's own compiler, whichever patch release the checkout pins.
ENV RUSTUP_TOOLCHAIN=$RUST_VERSION
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --package gateway --bin cluster-gateway \
    && install -D --strip target/dist/cluster-gateway /image/cluster-gateway
RUN ldd /image/cluster-gateway | grep -o '/lib[^ ]*' | xargs cp -L --parents -t /image \
    && cp --parents /etc/ssl/certs/ca-certificates.crt /image \
    && echo 'nonroot:x:65532:65532::/:/sbin/nologin' > /image/etc/passwd \
    && echo 'nonroot:x:65532:' > /image/etc/group \
    && ln -s cluster-gateway /image/apiserver \
    && ln -s cluster-gateway /image/patch \
    && chroot /image /apiserver --version

FROM scratch
COPY --from=build /image /
USER 65532:65532
ENTRYPOINT ["/apiserver"]
