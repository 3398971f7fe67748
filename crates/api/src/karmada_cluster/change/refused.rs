//! Why a change of a Cluster is refused.

use http::StatusCode;

use crate::karmada::{API_VERSION, CLUSTERS, GROUP, KIND};
use crate::karmada_cluster::MOST_KEPT;
use crate::karmada_cluster::problem::Problem;
use crate::patch::PatchError;
use crate::status::{Details, Reason, Status};

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("the body is not valid JSON of a {KIND}")]
    Json,
    #[error("the body must be a {KIND} of {API_VERSION}")]
    Type,
    #[error("name must be provided")]
    NoName,
    #[error("metadata.generateName is not supported here: set metadata.name")]
    GenerateName,
    #[error("resourceVersion should not be set on objects to be created")]
    VersionOfNew,
    #[error("the name of the object ({0}) does not match the name on the URL ({1})")]
    Name(String, String),
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// `fieldValidation=Strict`.
    #[error("strict decoding error: unknown field {}", .0.iter().map(|field| format!("{field:?}")).collect::<Vec<_>>().join(", unknown field "))]
    Strict(Vec<String>),
    #[error(
        "Operation cannot be fulfilled on clusters.cluster.karmada.io \"{0}\": the object has been modified; please apply \
         your changes to the latest version and try again"
    )]
    Version(String),
    #[error(
        "Operation cannot be fulfilled on clusters.cluster.karmada.io \"{0}\": the UID is that of another object of this \
         name"
    )]
    Uid(String),
    #[error("{KIND}.{GROUP} \"{name}\" is invalid: {}", said(.problems))]
    Invalid { name: String, problems: Vec<Problem> },
    #[error(
        "Request entity too large: what a Cluster says beyond its Secret must fit an annotation of {} KiB",
        MOST_KEPT >> 10
    )]
    TooLarge,
    #[error("Request entity too large: the body of a Cluster may have {0} values")]
    TooManyValues(usize),
}

/// `field.ErrorList.ToAggregate`.
fn said(problems: &[Problem]) -> String {
    let one = |problem: &Problem| format!("{}: {}", problem.field, problem.message);
    match problems {
        [only] => one(only),
        all => format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

// === impl Refused ===

impl Refused {
    /// One invalid field of the Cluster `name`: like upstream's `field.Invalid`, but without the
    /// value, which may be a credential.
    pub fn field(name: &str, field: &str, detail: &str) -> Self {
        let message = format!("Invalid value: {detail}").into();
        let problem = Problem { reason: "FieldValueInvalid".into(), message, field: field.to_owned().into() };
        Self::Invalid { name: name.to_owned(), problems: vec![problem] }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let details = |name: String, kind: &'static str| Details {
            name: name.into(),
            group: GROUP.into(),
            kind: kind.into(),
            ..Details::default()
        };
        match refused {
            Refused::Patch(refused) => refused.into(),
            Refused::Version(name) | Refused::Uid(name) => {
                Self::new(StatusCode::CONFLICT, Reason::Conflict, message).with_details(details(name, CLUSTERS))
            }
            Refused::Invalid { name, problems: causes } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message)
                    .with_details(Details { causes, ..details(name, KIND) })
            }
            Refused::TooLarge | Refused::TooManyValues(_) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::RequestEntityTooLarge, message)
            }
            _ => Self::bad_request(message),
        }
    }
}
